WITH far_sales AS (
    SELECT ws_sold_date_sk AS date_sk, ws_ext_sales_price AS amount FROM web_sales
    UNION ALL
    SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales
),
weeks AS (
    SELECT d_week_seq,
        sum(CASE WHEN d_day_name = 'Sunday' THEN amount END) AS sunday,
        sum(CASE WHEN d_day_name = 'Wednesday' THEN amount END) AS wednesday,
        sum(CASE WHEN d_day_name = 'Saturday' THEN amount END) AS saturday
    FROM far_sales, date_dim
    WHERE d_date_sk = date_sk
    GROUP BY d_week_seq
)
SELECT y.d_week_seq, round(y.sunday / z.sunday, 2) AS sunday_ratio,
    round(y.wednesday / z.wednesday, 2) AS wednesday_ratio,
    round(y.saturday / z.saturday, 2) AS saturday_ratio
FROM (SELECT weeks.* FROM weeks, date_dim AS d WHERE d.d_week_seq = weeks.d_week_seq
        AND d_year = 2000) AS y,
    (SELECT weeks.* FROM weeks, date_dim AS d WHERE d.d_week_seq = weeks.d_week_seq
        AND d_year = 2001) AS z
WHERE y.d_week_seq = z.d_week_seq - 53
ORDER BY d_week_seq
