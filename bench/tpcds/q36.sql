SELECT sum(ss_net_profit) / sum(ss_ext_sales_price) AS margin, i_category, i_class,
    grouping(i_category) + grouping(i_class) AS lochierarchy,
    rank() OVER (
        PARTITION BY grouping(i_category) + grouping(i_class),
            CASE WHEN grouping(i_class) = 0 THEN i_category END
        ORDER BY sum(ss_net_profit) / sum(ss_ext_sales_price)
    ) AS rank_within_parent
FROM store_sales, date_dim, item, store
WHERE d_year = 2000 AND d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk
    AND s_store_sk = ss_store_sk AND s_state IN ('TN', 'SD', 'AL')
GROUP BY ROLLUP (i_category, i_class)
ORDER BY lochierarchy DESC, rank_within_parent
LIMIT 100
