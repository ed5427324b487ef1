WITH weeks AS (
    SELECT d_week_seq, ss_store_sk,
        sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sunday,
        sum(CASE WHEN d_day_name = 'Tuesday' THEN ss_sales_price END) AS tuesday,
        sum(CASE WHEN d_day_name = 'Thursday' THEN ss_sales_price END) AS thursday
    FROM store_sales, date_dim
    WHERE d_date_sk = ss_sold_date_sk
    GROUP BY d_week_seq, ss_store_sk
)
SELECT y.s_store_name, y.s_store_id, y.d_week_seq, y.sunday / z.sunday AS sunday_ratio,
    y.tuesday / z.tuesday AS tuesday_ratio, y.thursday / z.thursday AS thursday_ratio
FROM (
    SELECT s_store_name, s_store_id, weeks.d_week_seq, sunday, tuesday, thursday
    FROM weeks, store, date_dim AS d
    WHERE d.d_week_seq = weeks.d_week_seq AND ss_store_sk = s_store_sk
        AND d_month_seq BETWEEN 1195 AND 1206
) AS y, (
    SELECT s_store_name, s_store_id, weeks.d_week_seq, sunday, tuesday, thursday
    FROM weeks, store, date_dim AS d
    WHERE d.d_week_seq = weeks.d_week_seq AND ss_store_sk = s_store_sk
        AND d_month_seq BETWEEN 1207 AND 1218
) AS z
WHERE y.s_store_id = z.s_store_id AND y.d_week_seq = z.d_week_seq - 52
ORDER BY y.s_store_name, y.s_store_id, y.d_week_seq
LIMIT 100
